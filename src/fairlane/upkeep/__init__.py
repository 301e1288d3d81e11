"""What has to be done by somebody, whoever it is: workers and servers alike stand ready."""
