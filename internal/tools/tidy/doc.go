// Package tidy measures how readable the sources and documents are: one-word names, words that hide
// their subject, long lines, large types and packages, long sentences. Its test holds each count
// below a ceiling and prints the ten worst places of each measure. A ceiling only ever falls: lower
// it when a change has brought the count down.
package tidy
