"""`hardwood reproduce` as a user meets it."""

from command import run


def test_list_names_tables_and_figures():
    done = run("reproduce", "--list")
    assert done.returncode == 0, done.stderr
    for key in ("table2", "table3", "trees", "forest", "accuracy", "toy", "images"):
        assert f"\n{key} " in f"\n{done.stdout}"


def test_the_toy_figure(tmp_path):
    done = run("reproduce", "toy", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "figures" / "toy.png").read_bytes().startswith(b"\x89PNG")


def test_an_unknown_table():
    done = run("reproduce", "table9")
    assert done.returncode == 2
    assert "hardwood: 'table9' is no table or figure; choose from table2," in done.stderr
