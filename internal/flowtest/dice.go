package flowtest

import "pgregory.net/rapid"

// Dice decide. Those of rapid shrink a failure, those of bytes let a fuzzer see what it does.
type Dice interface {
	Pick(what string, n int) int // 0..n-1
}

type Rapid struct{ *rapid.T }

func (r Rapid) Pick(what string, n int) int { return rapid.IntRange(0, n-1).Draw(r.T, what) }

type Bytes struct{ Left []byte }

func (b *Bytes) Pick(_ string, n int) int {
	if len(b.Left) == 0 {
		return 0
	}
	first := b.Left[0]
	b.Left = b.Left[1:]
	return int(first) % n
}

func Chance(d Dice, percent int) bool { return d.Pick("chance", 100) < percent }

func OneOf[T any](d Dice, what string, from ...T) T { return from[d.Pick(what, len(from))] }

func Between(d Dice, what string, low, high int) int { return low + d.Pick(what, high-low+1) }
