package flowtest

// randomProgram makes some nodes run a program, at the member or at a worker, with values in its
// variables. Some values never exist, and some come and go.
func randomProgram(d Dice, n Object, refs ...string) {
	if !Chance(d, 12) {
		return
	}
	exec := Object{"type": "process", "command": "x",
		"env": Object{"A": OneOf(d, "env", append(refs, "${shared.flag}", "${shared.flag:-none}",
			"${run.val} ${params.text}", "${input.x:-}", "${params.none}")...), "B": "b"}}
	delete(n, "service")
	if Chance(d, 50) {
		exec["service"] = "echo"
	} else {
		delete(n, "exec_type")
		delete(n, "route")
		delete(n, "start_timeout")
		delete(n, "heartbeat_timeout")
	}
	n["exec"] = exec
}
