package api

// routeRoles holds the roles that may call the routes outside /v1. The routes of /v1 have their own
// table.
var routeRoles = map[string]byMethod{
	"/metrics": readable,
	"/ws":      readable, // event stream of Ork

	// Workers of all dialects, and the stream of attached workers.
	"/troupe.attach.v1.Workers/": forWorkers,
	"/workers/register":          forWorkers,
	"/workers/heartbeat":         forWorkers,
	"/workers/deregister":        {ForOperatorsOrWorkers, ForOperatorsOrWorkers},
	"/workers/list":              readable,
	"/workers/allocate":          readable,
	"/register":                  forWorkers,
	"/heartbeat":                 forWorkers,
	"/list":                      readable,
	"/allocate":                  readable,
	"/queue/poll":                forWorkers,
	"/queue/complete":            {ForOperatorsOrWorkers, ForOperatorsOrWorkers},
	"/queue/heartbeat":           forWorkers,
	"/queue/release":             forWorkers,
	"/queue/params":              forWorkers,
	"/queue/update_run":          forWorkers,

	// Definitions.
	"/flows":                     published,
	"/flows/version":             published,
	"/flows/version/get":         readable,
	"/flows/{slug}":              published,
	"/flows/{slug}/ensure":       published,
	"/workflows":                 published,
	"/workflows/{name}":          published,
	"/workflows/{name}/schedule": published,

	// Tasks.
	"/tasks":                            operated,
	"/tasks/get":                        readable,
	"/tasks/runs":                       readable,
	"/tasks/logs":                       readable,
	"/tasks/cancel":                     operated,
	"/tasks/signal":                     {ForViewers, ForApprovers},
	"/tasks/run_once":                   operated,
	"/tasks/{task}/pause":               operated,
	"/tasks/{task}/resume":              operated,
	"/flows/{slug}/runs":                operated,
	"/workflows/{name}/runs":            operated,
	"/runs":                             operated,
	"/runs/{run}":                       operated,
	"/runs/{run}/pause":                 operated,
	"/runs/{run}/resume":                operated,
	"/runs/{run}/cancel":                operated,
	"/runs/{run}/retry":                 operated,
	"/runs/{run}/tasks":                 operated,
	"/runs/{run}/tasks/complete":        {ForViewers, ForOperatorsOrWorkers},
	"/runs/{run}/tasks/fail":            {ForViewers, ForOperatorsOrWorkers},
	"/runs/{run}/tasks/complete_direct": operated,
	"/runs/{run}/tasks/append":          operated,
	"/runs/{run}/tasks/{name}/logs":     operated,
	"/runs/{run}/events":                operated,
	"/runs/{run}/wait":                  operated,
}

var (
	readable   = byMethod{ForViewers, ForViewers}
	operated   = byMethod{ForViewers, ForOperators}
	published  = byMethod{ForViewers, ForAuthors}
	forWorkers = byMethod{ForWorkers, ForWorkers}
)
