package wire

import "encoding/json"

// HookSettings defines the effect of deliveries to a hook. With a signal they signal a task,
// otherwise they start one. Expressions are in CEL, over body, headers (names in lower case),
// query, delivery and hook.
type HookSettings struct {
	Scheme  string            `json:"scheme,omitempty" enum:"standard,github,stripe" doc:"how deliveries are signed; standard = Standard Webhooks, with the headers webhook-id, webhook-timestamp and webhook-signature"`
	Header  string            `json:"header,omitempty" maxLength:"100" pattern:"^[A-Za-z0-9-]*$" doc:"the header of the signature, where another one than X-Hub-Signature-256 or Stripe-Signature has it"`
	When    string            `json:"when,omitempty" doc:"expression: which deliveries are carried out; others are acknowledged and passed over" example:"headers[\"x-github-event\"] == \"push\""`
	Flow    string            `json:"flow,omitempty" maxLength:"128" doc:"slug or id of the flow that is started; of a signal with a key: that of the task"`
	Version int               `json:"version,omitempty" minimum:"0" doc:"number of the version that is started; 0 = the newest published one"`
	Key     string            `json:"key,omitempty" doc:"expression: the idempotency key of the start, so that deliveries with the same one are the same task; absent = each delivery starts a task. Of a signal: that with which its task was started" example:"body.order.id"`
	Params  json.RawMessage   `json:"params,omitempty" doc:"what the flow is started with: JSON in which every text is an expression; absent = the body"`
	Labels  map[string]string `json:"labels,omitempty" maxProperties:"64" doc:"of the task that is started: expressions by name"`
	Signal  string            `json:"signal,omitempty" maxLength:"200" doc:"the key that a signal sets; with it the hook signals a task"`
	Task    string            `json:"task,omitempty" doc:"expression: id of the task that is signaled; or else flow and key say which one" example:"body.task"`
	Value   json.RawMessage   `json:"value,omitempty" doc:"what the signal sets its key to: JSON in which every text is an expression; absent = the body"`
}

// SetHook is a request to create or change a hook.
type SetHook struct {
	HookSettings
	Disabled  bool   `json:"disabled,omitempty" doc:"its deliveries are refused"`
	Secret    string `json:"secret,omitempty" writeOnly:"true" minLength:"16" maxLength:"256" doc:"what deliveries are signed with; absent = the one that the hook has, or, of a new hook, one that is made and answered this once"`
	NewSecret bool   `json:"new_secret,omitempty" doc:"have a new secret made, which is answered this once"`
	KeepMS    int64  `json:"keep_ms,omitempty" minimum:"0" maximum:"2592000000" doc:"how long the secret before a new one stays valid beside it; 0 = not at all"`
	Revision  int64  `json:"revision,omitempty" minimum:"0" doc:"of the hook that is to be changed: a conflict (409) when somebody else has changed it since; 0 = whichever it has"`
}

// Hook is a hook as it is shown, without its secret.
type Hook struct {
	Name string `json:"name"`
	HookSettings
	Disabled       bool   `json:"disabled"`
	Path           string `json:"path" doc:"where deliveries are sent" example:"/v1/hooks/orders"`
	OldSecretUntil Time   `json:"old_secret_until,omitzero" doc:"how long the secret before the newest one is valid; absent when it is not"`
	Revision       int64  `json:"revision" doc:"one more with every change"`
	CreatedAt      Time   `json:"created_at"`
	UpdatedAt      Time   `json:"updated_at"`
}

// HookSet is the answer to a SetHook.
type HookSet struct {
	Hook
	Created bool   `json:"created"`
	Secret  string `json:"secret,omitempty" doc:"only when it was made now: it is shown this once"`
}

// Delivered is the answer to a delivery.
type Delivered struct {
	Hook     string `json:"hook"`
	Delivery string `json:"delivery" doc:"its id"`
	Task     string `json:"task,omitempty" doc:"id of the task that was started, or signaled; absent when the delivery was passed over"`
	Created  bool   `json:"created" doc:"false when the task was there"`
	Repeated bool   `json:"repeated,omitempty" doc:"the delivery had come before: this is what it came to, and nothing was done again"`
	Ignored  bool   `json:"ignored,omitempty" doc:"the hook's condition (when) passes it over"`
}
