package tidy

import (
	"cmp"
	"fmt"
	"slices"
)

// codeMeasure is a count, with the places that contribute to the count.
type codeMeasure struct {
	name   string
	value  float64
	places []countedPlace
}

// countedPlace is a place with its contribution to a measure.
type countedPlace struct {
	at     string
	weight float64
}

// shownPlaces is the number of places printed per measure.
const shownPlaces = 10

// worstPlaces returns the places with the largest contributions, largest first.
func (m *codeMeasure) worstPlaces() []countedPlace {
	sorted := slices.SortedStableFunc(slices.Values(m.places), func(a, b countedPlace) int { return cmp.Compare(b.weight, a.weight) })
	return sorted[:min(len(sorted), shownPlaces)]
}

// countPlaces returns a measure whose value is the number of its places.
func countPlaces(name string, places []countedPlace) codeMeasure {
	return codeMeasure{name, float64(len(places)), places}
}

// largestOf returns a measure whose value is the largest contribution of a place.
func largestOf(name string, places []countedPlace) codeMeasure {
	m := codeMeasure{name: name, places: places}
	for _, p := range places {
		m.value = max(m.value, p.weight)
	}
	return m
}

// measureTree returns all measures of a tree.
func measureTree(t *sourceTree) []codeMeasure {
	functions, spread := measureFunctions(t)
	methods, fields := measureTypes(t)
	return []codeMeasure{functions, measureTypeNames(t), spread, measureCommentWords(t), measureCommentLines(t),
		measureCodeLines(t), methods, fields, measurePackages(t), measureSentences(t),
		measureLength(t, "README.md", "lines", countLines),
		measureLength(t, "ARCHITECTURE.md", "words", countWords),
		measureLength(t, "CHANGELOG.md", "words", countWords)}
}

func (p countedPlace) String() string { return fmt.Sprintf("%8.4g  %s", p.weight, p.at) }
