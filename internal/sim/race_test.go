//go:build race

package sim

// fewer is by how much fewer seeds are played. A simulated world goes one step at a time, so the
// race detector finds little in it; but it takes ten times as long, and memory that grows with each
// step.
const fewer = 8
