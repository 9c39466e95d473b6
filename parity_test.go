package troupe_test

import (
	"encoding/json"
	"os"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe"
)

// methods maps the routes of /v1 to the methods of an Engine. Routes that a worker uses are covered
// by package worker, and functions of the program do not need them.
var methods = map[string]string{
	"publish-flow": "Apply", "publish-named-flow": "Apply", "try-definition": "Try",
	"validate-definition": "Validate", "list-flows": "Flows", "get-flow": "Flow",
	"list-versions": "Versions", "get-version": "Version", "get-graph": "Graph",
	"diff-versions": "Diff", "get-flow-openapi": "FlowOpenAPI", "delete-flow": "DeleteFlow",
	"get-worker": "Worker",

	"list-schedules": "Schedules", "get-schedule": "Schedule", "set-schedule": "SetSchedule",
	"delete-schedule": "DeleteSchedule", "enable-schedule": "EnableSchedule",
	"disable-schedule": "DisableSchedule", "next-slots": "NextSlots",
	"preview-schedule": "PreviewSchedule", "trigger-schedule": "TriggerSchedule",
	"backfill-schedule": "BackfillSchedule",

	"start-tasks": "Start", // by several goroutines: starts at the same time are stored together
	"start-task":  "Start", "list-tasks": "Tasks", "count-tasks": "CountTasks", "get-task": "Task",
	"cancel-task": "Cancel", "pause-task": "Pause", "resume-task": "Resume",
	"hold-step": "HoldStep", "release-step": "ReleaseStep", "retry-task": "Retry",
	"fork-task": "Fork", "rerun-task": "Rerun", "compare-tasks": "Compare", "bulk-tasks": "Bulk",
	"append-units": "Append", "complete-unit": "Complete", "signal-task": "Signal",
	"list-steps": "Steps", "list-units": "Units", "list-unit-states": "UnitStates",

	"list-approvals": "Approvals", "get-approval": "Approval", "answer-approval": "AnswerApproval",
	"link-approval": "LinkApproval", "get-linked-approval": ofBrowsers, "answer-linked-approval": ofBrowsers,

	"list-events": "Events", "list-runs": "Runs", "get-waiting": "Waiting", "get-digest": "Digest",
	"get-trace": "Trace", "get-timeline": "Timeline", "get-value": "Value",
	"stream-events": "Watch", "stream-socket": "Watch",

	"list-logs": "Logs", "stream-logs": "FollowLogs",
	"list-streams": "Streams", "read-stream": "FollowStream", // and StreamPage

	"open-session": ofBrowsers, "close-session": ofBrowsers, "get-identity": ofBrowsers,
	"get-settings": ofAdmins, "list-tokens": ofAdmins, "list-views": ofBrowsers,
	"set-view": ofBrowsers, "delete-view": ofBrowsers, "create-token": ofAdmins, "delete-token": ofAdmins,

	"get-job": "Job", "get-log": "Log", "list-jobs": "Jobs", "list-queues": "Queues",
	"list-workers": "Workers", "get-info": "Info", "get-overview": "Overview",
	"get-stats": "FlowStats", "get-series": "StatsSeries",
	"list-members": "Members", "list-shards": "Shards", "drain-member": "Drain", "undrain-member": "Undrain",

	"list-hooks": "Hooks", "get-hook": "Hook", "set-hook": "SetHook", "delete-hook": "DeleteHook", "deliver": "Deliver",

	"claim-job": ofWorkers, "complete-job": ofWorkers, "fail-job": ofWorkers, "job-params": ofWorkers, "release-job": ofWorkers,
	"remove-worker": ofWorkers, "register-worker": ofWorkers, "worker-heartbeat": ofWorkers,
	"poll-jobs": ofWorkers, "release-jobs": ofWorkers,
	"report-jobs": ofWorkers, "write-streams": ofWorkers,
}

const (
	ofWorkers  = "package worker"
	ofAdmins   = "who operates members over HTTP"
	ofBrowsers = "browsers sign in, a program is in"
)

func TestEveryRouteHasAMethod(t *testing.T) {
	text, err := os.ReadFile("api/v1/openapi.json")
	require.NoError(t, err)
	var document struct {
		Paths map[string]map[string]struct {
			ID string `json:"operationId"`
		}
	}
	require.NoError(t, json.Unmarshal(text, &document))
	engine, known := reflect.TypeFor[*troupe.Engine](), map[string]bool{}
	for path, operations := range document.Paths {
		for verb, operation := range operations {
			known[operation.ID] = true
			name := methods[operation.ID]
			require.NotEmpty(t, name, "%s %s (%s): which method of Engine does it?", verb, path, operation.ID)
			_, there := engine.MethodByName(name)
			require.True(t, there || name == ofWorkers || name == ofBrowsers || name == ofAdmins,
				"%s: Engine has no method %s", operation.ID, name)
		}
	}
	for id := range methods {
		require.True(t, known[id], "there is no route %s any more", id)
	}
}
