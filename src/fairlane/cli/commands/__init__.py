"""The commands, a module for each thing one comes for. Imported when they are asked for."""
