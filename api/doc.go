// Package api is Troupe's border to the world of HTTP: one shell around several families of routes.
//
// The shell gives every request an id, a log line without payloads, bounded time and size, and one
// answer to the question who may come in; it knows what errors come to (errors.go) and what people
// call states (words.go). Families (api/graph, api/pgflow, api/v1) are thin: they decode, call,
// encode. Where two of them have the same path, the fields of a request tell them apart
// (shared.go). /healthz, /readyz and /metrics tell how this member is.
//
// Promises: no page of a foreign site can drive a member (Origin and Host are checked); nothing but
// a token opens a member that has tokens; bodies are bounded; a handler that panics answers 500 and
// harms nobody else; no path or URL that a client sends is ever opened; payloads never reach logs.
package api
