package flowtest

// randomKeys may add limits to the jobs of a node. They change the timing, and nothing else.
func randomKeys(d Dice, n Object, refs ...string) {
	if Chance(d, 12) {
		n["concurrency"] = Object{"key": OneOf(d, "key", append(refs, "", "k", "$params.val")...), "limit": Between(d, "limit", 1, 3),
			"fair": OneOf(d, "fair", "", "", "$params.text")}
	}
	if Chance(d, 6) {
		n["rate"] = Object{"key": OneOf(d, "rate", append(refs, "", "$params.text")...), "limit": Between(d, "limit", 1, 3), "per": "100ms"}
	}
	if n["concurrency"] != nil && Chance(d, 30) {
		n["priority"] = OneOf[any](d, "priority", 7, -3, "$params.val")
	}
}
