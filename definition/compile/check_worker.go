package compile

import (
	"net/url"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/flow"
)

// workerFields returns the fields that do not apply to an Ork worker.
func workerFields(e *definition.ExecOf) []idleField {
	const why = "is up to the worker, which cannot be told"
	return []idleField{{"root", e.Root != "", why}, {"stdin_mode", e.StdinMode != "", why},
		{"output_mode", e.OutputMode != "", why}, {"grace", !e.Grace.IsZero(), why},
		{"upstream_env", e.UpstreamEnv, why}, {"report", e.Report != "", why},
		{"resources", e.Resources != nil, why}, {"warm", e.Warm != 0, why},
		{"secrets", len(e.Secrets) > 0, "are not sent to an Ork worker: have its own environment hold them"},
		{"service", e.Service != "", "is not what an Ork worker is found by: its url is"}}
}

// orkWorker checks the request to an Ork worker.
func (c programChecker) orkWorker(e *definition.ExecOf, at *definition.Place) {
	switch u, err := url.Parse(e.URL); {
	case e.URL == "":
		c.Errorf(at.Key("url"), "is missing: say where the worker is, such as http://127.0.0.1:8081")
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" ||
		u.User != nil || u.RawQuery != "" || u.Fragment != "":
		c.Errorf(at.Key("url"), "must be http://host:port without user, query or fragment")
	}
	if e.Executor != "" && !slices.Contains(flow.Executors, e.Executor) {
		c.Errorf(at.Key("executor"), "unknown word %.80q: write %s", e.Executor, strings.Join(flow.Executors, ", "))
	}
	given := 0
	for _, is := range []bool{!e.Command.IsZero(), e.File != "", e.Module != ""} {
		if is {
			given++
		}
	}
	if given != 1 {
		c.Errorf(at, "give it a command, a file or a module: one of them")
	}
}
