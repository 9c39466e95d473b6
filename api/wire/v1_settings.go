package wire

// Settings is the configuration of a member's HTTP server, including defaults. It holds no secrets.
type Settings struct {
	Tokens        int      `json:"tokens" doc:"Number of tokens that the server was started with; 0 = every caller may do everything."`
	TLS           bool     `json:"tls" doc:"True if the server has a certificate or requests one from clients."`
	AllowOrigins  []string `json:"allow_origins" nullable:"false" doc:"Origins of web pages that may call the server, besides this computer's; * = all."`
	AllowHosts    []string `json:"allow_hosts" nullable:"false" doc:"Host names of the server, besides its address; * = all."`
	MaxBody       int64    `json:"max_body" doc:"Maximum size of a request in bytes."`
	ReadTimeoutMS int64    `json:"read_timeout_ms" doc:"Time limit in milliseconds for reading a whole request, and for the client to read each part of the response."`
	IdleTimeoutMS int64    `json:"idle_timeout_ms" doc:"Time limit in milliseconds for a connection between two requests."`
	GraceMS       int64    `json:"grace_ms" doc:"Time in milliseconds for running requests to end when the server stops."`
}
