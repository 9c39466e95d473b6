// Package ui serves the web pages, which are built from src and embedded. The repository contains
// the built pages, so Node.js is needed only to change them.
//
// Every file has an ETag and a compressed form. Every path below /ui/ without a file returns the
// page itself, so that links into the page work. The content security policy allows only content of
// this server.
//
// The pages only call /v1. The files in dist have no hashes in their names: browsers check each
// time whether their copy is current (304). `make ui` builds the pages; a test compares SOURCE in
// dist with the sources.
package ui
