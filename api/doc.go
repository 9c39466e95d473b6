// Package api is Troupe's border to the world of HTTP: one shell around several families of routes.
//
// The shell (server.go) gives every request an id, a log line without payloads, bounded time and
// size, and one answer to the question who may come in. Families are thin: they decode, call, encode.
//
//   - The graph routes (files graph_*.go) speak the PocketFlow dialect, bare and under /api.
//   - The routes of pgflow (files pgflow_*.go) speak its dialect, bare and under /api. What both have, the
//     fields of a request tell apart.
//   - /v1 is Troupe's own API, mounted beside them.
//   - /healthz, /readyz and /metrics tell how this member is.
//
// Promises: no page of a foreign site can drive a member (Origin and Host are checked); nothing but a
// token opens a member that has tokens; bodies are bounded; a handler that panics answers 500 and
// harms nobody else; no path or URL that a client sends is ever opened; payloads never reach logs.
package api
