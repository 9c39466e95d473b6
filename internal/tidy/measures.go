package tidy

import (
	"cmp"
	"fmt"
	"slices"
)

// measure is one count and the places that weigh most in it.
type measure struct {
	name   string
	value  float64
	places []place
}

// place is somewhere that a measure counts, and how much it weighs there.
type place struct {
	at     string
	weight float64
}

// shownPlaces is how many places of a measure are printed.
const shownPlaces = 10

// worstPlaces returns the places that weigh most, the heaviest first.
func (m *measure) worstPlaces() []place {
	sorted := slices.SortedStableFunc(slices.Values(m.places), func(a, b place) int { return cmp.Compare(b.weight, a.weight) })
	return sorted[:min(len(sorted), shownPlaces)]
}

// countPlaces returns a measure whose value is the number of its places.
func countPlaces(name string, places []place) measure {
	return measure{name, float64(len(places)), places}
}

// largestOf returns a measure whose value is the weight of its heaviest place.
func largestOf(name string, places []place) measure {
	m := measure{name: name, places: places}
	for _, p := range places {
		m.value = max(m.value, p.weight)
	}
	return m
}

// measureTree returns all measures of a tree.
func measureTree(t *tree) []measure {
	functions, spread := measureFunctions(t)
	methods, fields := measureTypes(t)
	sentences, readme := measureDocuments(t)
	return []measure{functions, measureTypeNames(t), spread, measureCommentWords(t), measureCommentLines(t), measureCodeLines(t),
		methods, fields, measurePackages(t), sentences, readme}
}

func (p place) String() string { return fmt.Sprintf("%8.4g  %s", p.weight, p.at) }
