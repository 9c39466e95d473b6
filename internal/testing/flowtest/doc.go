// Package flowtest holds helpers for tests of flows: plans compiled from texts, and random
// definitions.
package flowtest
