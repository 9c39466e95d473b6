// Package show renders plans for display: as text, diagrams and data. It also renders the
// differences between two plans or two tasks.
package show
