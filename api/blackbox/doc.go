// Package blackbox holds Troupe to the compatibility checks of the PocketFlow and pgflow dialects,
// and its flows in dag mode to those of Ork, over HTTP alone, against every store: each check sends
// what a client would send and looks at the answers.
package blackbox
