// Package blackbox runs compatibility checks against Troupe over HTTP alone, with every store. They
// are the lists of the PocketFlow and pgflow dialects, and Ork's list for flows in dag mode. Each
// check sends requests like a client and checks the answers.
package blackbox
