// Command troupe runs a member of the workflow engine, its workers, and the commands to publish
// flows and to start and follow tasks. The implementation is in package internal/cli.
package main

import "github.com/troupe-engine/troupe/internal/cli"

func main() { cli.Main("troupe") }
