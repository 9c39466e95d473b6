// Package show renders plans for people: as text, as diagrams, as data, and how two of them differ,
// or two tasks.
package show
