// Package blackbox runs compatibility checks over HTTP, with every store. The checks are the lists
// of the PocketFlow and pgflow dialects, and Ork's list for flows in dag mode. Each check sends
// requests and checks the answers.
package blackbox
