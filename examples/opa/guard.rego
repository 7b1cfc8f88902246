# Start it with: opa run --server examples/opa/guard.rego
package hookline.guard

# /v1/data/hookline/guard/deny: the reasons to deny a call, none where it is fine.
deny contains reason if {
	endswith(input.tool_input.path, ".env")
	reason := sprintf("keep secrets out of %s", [input.tool_input.path])
}

deny contains "no pushes on behalf of a person" if {
	input.tool_name == "run_shell_command"
	startswith(input.tool_input.command, "git push")
}

# /v1/data/hookline/guard/allow: a plain yes or no.
default allow := false

allow if count(deny) == 0

# /v1/data/hookline/guard/output: everything that a hook can say.
output := {"decision": "deny", "reason": concat("; ", deny)} if count(deny) > 0

else := {"decision": "ask", "reason": "this is production"} if {
	startswith(input.tool_input.path, "prod/")
}

else := {"decision": "allow"}
