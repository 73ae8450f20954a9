# What no plan may do. Conftest and OPA read plan.json, which `nstance plan --report json=plan.json`
# writes; its keys are those of Terraform's plans.
package main

import rego.v1

allowed_types := {"m7g.large", "m7g.xlarge", "m7g.2xlarge"}

most_replacements := 5

# The instances that this plan makes or changes.
changed contains resource if {
	some resource in input.resource_changes
	resource.change.after != null
	resource.change.actions != ["no-op"]
}

replaced contains resource.address if {
	some resource in input.resource_changes
	"create" in resource.change.actions
	"delete" in resource.change.actions
}

deny contains "the plan is incomplete: some instances could not be planned" if {
	not input.complete
}

deny contains message if {
	count(replaced) > most_replacements
	message := sprintf(
		"%d instances are replaced at once, and %d are allowed",
		[count(replaced), most_replacements],
	)
}

deny contains message if {
	some resource in changed
	not resource.change.after.instance_type in allowed_types
	message := sprintf(
		"%s: the instance type %s is not allowed",
		[resource.address, resource.change.after.instance_type],
	)
}

deny contains message if {
	some resource in changed
	resource.type == "aws_instance"
	tokens := object.get(resource.change.after.args, ["MetadataOptions", "HttpTokens"], "optional")
	tokens != "required"
	message := sprintf("%s: the metadata service answers without a token", [resource.address])
}

deny contains message if {
	some resource in changed
	resource.type == "aws_instance"
	some device in object.get(resource.change.after.args, "BlockDeviceMappings", [])
	not object.get(device, ["Ebs", "Encrypted"], false)
	message := sprintf("%s: the volume %s is not encrypted", [resource.address, device.DeviceName])
}
