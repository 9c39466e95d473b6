package wire

// Settings is the configuration of a member's HTTP server, including defaults. It holds no secrets.
type Settings struct {
	Tokens        int      `json:"tokens" doc:"how many tokens the server was started with; 0: everybody who reaches it may do everything"`
	TLS           bool     `json:"tls" doc:"whether the server proves itself with a certificate or asks for one"`
	AllowOrigins  []string `json:"allow_origins" nullable:"false" doc:"origins of web pages that may call, besides this computer's; * = all"`
	AllowHosts    []string `json:"allow_hosts" nullable:"false" doc:"names the server is called by, besides its address; * = all"`
	MaxBody       int64    `json:"max_body" doc:"bytes of a request"`
	ReadTimeoutMS int64    `json:"read_timeout_ms" doc:"for one whole request, and for each part of its answer to be read"`
	IdleTimeoutMS int64    `json:"idle_timeout_ms" doc:"of a connection between two requests"`
	GraceMS       int64    `json:"grace_ms" doc:"how long requests may go on when the server leaves"`
}
