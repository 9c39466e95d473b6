package types

import "strings"

// mostNames is the maximum number of names for a comparison, and longestName the maximum length of
// the word in bytes. Each comparison takes a few microseconds.
const (
	mostNames   = 500
	longestName = 40
)

// Nearest returns the name that a word probably misspells, or "" if no name is close.
func Nearest(word string, names []string) string {
	if len(word) > longestName || len(names) > mostNames {
		return ""
	}
	best, distance := "", 3
	bare := normalizeWord(word)
	for _, name := range names {
		other := normalizeWord(name)
		if name == "" || len(other) > len(bare)+2 || len(bare) > len(other)+2 {
			continue
		}
		if d := editDistance(bare, other); d < distance || d == distance && best != "" && name < best {
			best, distance = name, d
		}
	}
	if distance*3 > len(word) {
		return ""
	}
	return best
}

// normalizeWord returns a word in lower case, without hyphens and underscores.
func normalizeWord(word string) string {
	return strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(word))
}

// editDistance returns the number of edits that turn one word into the other. An edit adds, drops
// or changes a byte, or swaps two neighbors.
func editDistance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(last[j]+cost, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
