package wire

import "encoding/json"

// HookSpec defines the effect of deliveries to a hook. With a signal, they signal a task; otherwise
// they start one. Expressions are in CEL, with the variables body, headers (lower-case names),
// query, delivery and hook.
type HookSpec struct {
	Scheme  string            `json:"scheme,omitempty" enum:"standard,github,stripe" doc:"Scheme of the signatures; standard = Standard Webhooks, with the headers webhook-id, webhook-timestamp and webhook-signature."`
	Header  string            `json:"header,omitempty" maxLength:"100" pattern:"^[A-Za-z0-9-]*$" doc:"Header of the signature, if it is not X-Hub-Signature-256 or Stripe-Signature."`
	When    string            `json:"when,omitempty" doc:"Expression that selects the deliveries to process; others are acknowledged and ignored." example:"headers[\"x-github-event\"] == \"push\""`
	Flow    string            `json:"flow,omitempty" maxLength:"128" doc:"Slug or ID of the flow to start. For a signal with a key: flow of the task."`
	Version int               `json:"version,omitempty" minimum:"0" doc:"Number of the version to start; 0 = the newest published one."`
	Key     string            `json:"key,omitempty" doc:"Expression for the idempotency key of the start: deliveries with the same key are the same task; absent = each delivery starts a task. For a signal: the key with which the task was started." example:"body.order.id"`
	Params  json.RawMessage   `json:"params,omitempty" doc:"Params of the task: JSON in which every text is an expression; absent = the body."`
	Labels  map[string]string `json:"labels,omitempty" maxProperties:"64" doc:"Labels of the started task: expressions by name."`
	Signal  string            `json:"signal,omitempty" maxLength:"200" doc:"Key to signal; if it is set, the hook signals a task instead of starting one."`
	Task    string            `json:"task,omitempty" doc:"Expression for the ID of the task to signal; without it, flow and key select the task." example:"body.task"`
	Value   json.RawMessage   `json:"value,omitempty" doc:"Value of the signal: JSON in which every text is an expression; absent = the body."`
}

// HookSettings is a request to create or change a hook.
type HookSettings struct {
	HookSpec
	Disabled       bool   `json:"disabled,omitempty" doc:"True to reject deliveries."`
	Secret         string `json:"secret,omitempty" writeOnly:"true" minLength:"16" maxLength:"256" doc:"Secret that signs deliveries; absent = the current one, or for a new hook a generated one, which only this answer contains."`
	NewSecret      bool   `json:"new_secret,omitempty" doc:"True to generate a new secret, which only this answer contains."`
	OldSecretTTLMS int64  `json:"old_secret_ttl_ms,omitempty" minimum:"0" maximum:"2592000000" doc:"Time in milliseconds for which the previous secret stays valid; 0 = it becomes invalid at once."`
	Revision       int64  `json:"revision,omitempty" minimum:"0" doc:"Revision of the hook to change: a conflict (409) if it was changed since; 0 = any revision."`
}

// Hook is a hook without its secret.
type Hook struct {
	Name string `json:"name" doc:"Name of the hook."`
	HookSpec
	Disabled       bool   `json:"disabled" doc:"True if deliveries are rejected."`
	Path           string `json:"path" doc:"Path for deliveries." example:"/v1/hooks/orders"`
	OldSecretUntil Time   `json:"old_secret_until,omitzero" doc:"Time until which the previous secret is valid; absent if it is not."`
	Revision       int64  `json:"revision" doc:"Number of the revision, which grows by one with each change."`
	CreatedAt      Time   `json:"created_at" doc:"Time when the hook was created."`
	UpdatedAt      Time   `json:"updated_at" doc:"Time of the last change."`
}

// HookResult is the answer to a HookSettings.
type HookResult struct {
	Hook
	Created bool   `json:"created" doc:"True if the hook was created; false if it was changed."`
	Secret  string `json:"secret,omitempty" doc:"Generated secret; no other answer contains it."`
}

// HookDelivery is the answer to a delivery.
type HookDelivery struct {
	Hook     string `json:"hook" doc:"Name of the hook."`
	Delivery string `json:"delivery" doc:"ID of the delivery."`
	Task     string `json:"task,omitempty" doc:"ID of the task that was started or signaled; absent if the delivery was ignored."`
	Created  bool   `json:"created" doc:"True if a task was started; false if it existed already."`
	Repeated bool   `json:"repeated,omitempty" doc:"True if the delivery was received before: this is its result, and nothing was done again."`
	Ignored  bool   `json:"ignored,omitempty" doc:"True if the hook's condition (when) does not select the delivery."`
}
