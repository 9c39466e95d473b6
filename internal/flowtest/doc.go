// Package flowtest is what tests of flows have in common: plans made from texts, and definitions
// drawn at random.
package flowtest
