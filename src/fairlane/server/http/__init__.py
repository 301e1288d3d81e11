"""HTTP as it comes over the wire: listening, receiving, refusing what no application should see."""
