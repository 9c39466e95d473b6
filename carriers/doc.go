// Package carriers contains the common parts of all carriers. Each folder below is one way to carry
// out jobs: functions, scripts, programs, containers, HTTP workers, attached workers, and external
// work. Package logs stores the output of jobs.
package carriers
