package flowtest

import "pgregory.net/rapid"

// Dice is a source of random choices. Rapid shrinks failures; with Bytes a fuzzer controls the
// choices.
type Dice interface {
	Pick(what string, n int) int // returns a number from 0 to n-1
}

// Rapid takes its choices from a rapid test.
type Rapid struct{ *rapid.T }

// Pick returns a number from 0 to n-1.
func (r Rapid) Pick(what string, n int) int { return rapid.IntRange(0, n-1).Draw(r.T, what) }

// Bytes takes its choices from bytes, and returns 0 after the last one.
type Bytes struct{ Left []byte }

// Pick returns a number from 0 to n-1.
func (b *Bytes) Pick(_ string, n int) int {
	if len(b.Left) == 0 {
		return 0
	}
	first := b.Left[0]
	b.Left = b.Left[1:]
	return int(first) % n
}

// Chance returns true with a probability in percent.
func Chance(d Dice, percent int) bool { return d.Pick("chance", 100) < percent }

// OneOf returns a random value of the given ones.
func OneOf[T any](d Dice, what string, from ...T) T { return from[d.Pick(what, len(from))] }

// Between returns a number from low to high, both included.
func Between(d Dice, what string, low, high int) int { return low + d.Pick(what, high-low+1) }
