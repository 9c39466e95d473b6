//go:build !race

package sim

// fewer is the divisor for the number of seeds.
const fewer = 1
