//go:build !race

package sim

// fewer is by how much fewer seeds are played.
const fewer = 1
