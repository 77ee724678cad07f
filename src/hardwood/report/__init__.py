"""What the reader should conclude: tables and plots."""
