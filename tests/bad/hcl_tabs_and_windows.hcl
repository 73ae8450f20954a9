cluster {
	id = "test"
	idd = 1
}
shard {
	id = "é"
}
