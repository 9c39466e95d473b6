package route

import (
	"context"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"github.com/troupe-engine/troupe/api"
)

// roles holds the roles that may call an operation, by operation id. Operations without an entry
// are for admins.
var roles = map[string]api.Need{
	"get-identity": api.ForAll,
	"get-info":     api.ForAll,

	"get-settings": api.ForViewers,
	"get-overview": api.ForViewers,
	"get-series":   api.ForViewers,

	"list-members":   api.ForViewers,
	"list-shards":    api.ForViewers,
	"drain-member":   api.ForOperators,
	"undrain-member": api.ForOperators,

	"list-flows":          api.ForViewers,
	"get-flow":            api.ForViewers,
	"list-versions":       api.ForViewers,
	"get-version":         api.ForViewers,
	"get-graph":           api.ForViewers,
	"get-flow-openapi":    api.ForViewers,
	"get-stats":           api.ForViewers,
	"diff-versions":       api.ForViewers,
	"validate-definition": api.ForViewers,
	"publish-named-flow":  api.ForAuthors,
	"publish-flow":        api.ForAuthors,
	"delete-flow":         api.ForAuthors,
	"try-definition":      api.ForAuthors, // runs an unpublished definition

	"list-schedules":    api.ForViewers,
	"get-schedule":      api.ForViewers,
	"next-slots":        api.ForViewers,
	"preview-schedule":  api.ForViewers,
	"trigger-schedule":  api.ForOperators,
	"backfill-schedule": api.ForOperators,
	"disable-schedule":  api.ForOperators,
	"enable-schedule":   api.ForOperators,
	"set-schedule":      api.ForAuthors,
	"delete-schedule":   api.ForAuthors,

	"list-hooks":  api.ForViewers,
	"get-hook":    api.ForViewers,
	"set-hook":    api.ForAuthors,
	"delete-hook": api.ForAuthors,

	"list-views":  api.ForViewers,
	"set-view":    api.ForOperators,
	"delete-view": api.ForOperators,

	"list-tasks":       api.ForViewers,
	"count-tasks":      api.ForViewers,
	"get-task":         api.ForViewers,
	"get-digest":       api.ForViewers,
	"get-timeline":     api.ForViewers,
	"get-trace":        api.ForViewers,
	"get-value":        api.ForViewers,
	"get-waiting":      api.ForViewers,
	"compare-tasks":    api.ForViewers,
	"list-events":      api.ForViewers,
	"list-logs":        api.ForViewers,
	"list-streams":     api.ForViewers,
	"read-stream":      api.ForViewers,
	"list-runs":        api.ForViewers,
	"list-steps":       api.ForViewers,
	"list-units":       api.ForViewers,
	"list-unit-states": api.ForViewers,
	"stream-events":    api.ForViewers,
	"stream-logs":      api.ForViewers,
	"stream-socket":    api.ForViewers,

	"list-approvals":  api.ForViewers,
	"get-approval":    api.ForViewers,
	"answer-approval": api.ForApprovers,
	"link-approval":   api.ForApprovers, // an approver may delegate the answer

	"signal-task":   api.ForApprovers, // in a flow without approvals, people answer by signals
	"start-task":    api.ForOperators,
	"start-tasks":   api.ForOperators,
	"append-units":  api.ForOperators,
	"bulk-tasks":    api.ForOperators,
	"cancel-task":   api.ForOperators,
	"complete-unit": api.ForOperators,
	"fork-task":     api.ForOperators,
	"hold-step":     api.ForOperators,
	"pause-task":    api.ForOperators,
	"release-step":  api.ForOperators,
	"rerun-task":    api.ForOperators,
	"resume-task":   api.ForOperators,
	"retry-task":    api.ForOperators,

	"list-queues":   api.ForViewers,
	"list-jobs":     api.ForViewers,
	"get-job":       api.ForViewers,
	"get-log":       api.ForViewers,
	"job-params":    api.ForOperatorsOrWorkers,
	"complete-job":  api.ForOperatorsOrWorkers,
	"fail-job":      api.ForOperatorsOrWorkers,
	"write-streams": api.ForOperatorsOrWorkers,
	"release-job":   api.ForWorkers,
	"claim-job":     api.ForWorkers,

	"list-workers":     api.ForViewers,
	"get-worker":       api.ForViewers,
	"remove-worker":    api.ForOperatorsOrWorkers,
	"register-worker":  api.ForWorkers,
	"worker-heartbeat": api.ForWorkers,
	"poll-jobs":        api.ForWorkers,
	"release-jobs":     api.ForWorkers,
	"report-jobs":      api.ForWorkers,

	"list-tokens":  api.ForAdmins,
	"create-token": api.ForAdmins,
	"delete-token": api.ForAdmins,
}

// open lists the operations without a token, which check their callers in other ways.
var open = []string{"open-session", "close-session", "deliver", "get-linked-approval", "answer-linked-approval"}

// rolesExtension is the field of the description that lists the roles of an operation.
const rolesExtension = "x-roles"

// RestrictOperation limits an operation to its roles, and adds these roles to the description.
func (rt *Router) RestrictOperation(o *huma.Operation) {
	if slices.Contains(open, o.OperationID) {
		return
	}
	need := roles[o.OperationID]
	o.Extensions = map[string]any{rolesExtension: append(slices.Clone(need), api.Admin)}
	o.Middlewares = append(o.Middlewares, func(ctx huma.Context, next func(huma.Context)) {
		if why := rt.CheckRole(ctx.Context(), o.OperationID); why != nil {
			why.Send(ExchangeOf(ctx.Context()).Writer)
			return
		}
		next(ctx)
	})
}

// CheckRole returns the reason why the caller may not call an operation; nil if the caller may.
// Routers without a server are open to all.
func (rt *Router) CheckRole(ctx context.Context, operation string) *Problem {
	if rt.Shell == nil {
		return nil
	}
	why := api.Forbidden(ctx, roles[operation])
	if why == nil {
		return nil
	}
	p := &Problem{*why}
	p.RequestID = api.RequestID(ctx)
	return p.AddExplanation()
}
