// Package ui serves the web pages, which are built from src and embedded. The repository contains
// the built pages, so Node.js is needed only to change them.
//
// Every file has an ETag and is compressed once, for clients that accept it. Every address below
// /ui/ that is no file returns the page itself, so that links lead into it. No page may load or run
// anything that this server has not sent.
//
// The pages call /v1 and nothing else. The files in dist have no hashes in their names: browsers
// ask each time whether their copy is current (304), and a change of a text changes one file. `make
// ui` builds them; a test compares SOURCE in dist with the sources.
package ui
