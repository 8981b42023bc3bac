"""`script/backup` and `script/restore`: the database in one file, and back without a second payment."""
