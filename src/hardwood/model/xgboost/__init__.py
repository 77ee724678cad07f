"""XGBoost's format, in which models are saved: its tables, read and written, and our note."""
