"""The parts that the commands in `script/` share."""
