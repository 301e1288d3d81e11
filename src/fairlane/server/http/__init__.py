"""HTTP connections: listening, receiving, refusing invalid requests before the application."""
