// Package ui holds the pages for people with a browser, as they are built of src: whoever has the
// repository has them, without node.
//
// What it promises: every file is answered with an ETag and, to those who take it, compressed,
// which was done once; every address below /ui/ that is no file is the page itself, so that links
// lead into it; and no page may load or run anything that this server has not sent.
//
// The pages speak to /v1 and to nothing else. The files in dist have no hashes in their names:
// browsers ask each time whether theirs is still the one (304), and a change of a text is a change
// of one file. `make ui` builds them; a test compares SOURCE in dist with the sources.
package ui
