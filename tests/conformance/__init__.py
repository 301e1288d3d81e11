"""What every engine must do, in words that know no engine."""
