// Package carriers contains the common parts of all carriers. Each folder below it is one way to
// carry out jobs: functions, scripts, programs, containers, workers that are HTTP servers, attached
// workers, and external work. The package logs stores the output of jobs.
package carriers
