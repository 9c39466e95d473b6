//go:build race

package sim

// fewer is the divisor for the number of seeds. A simulated world is sequential, so the race
// detector finds little in it. But it takes ten times as long, and memory that grows with each
// step.
const fewer = 8
