"""`headwater audit ids`: exactly which records are missing, and which came twice."""
