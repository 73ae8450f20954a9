//! `GetServiceQuota`: its input from JSON, its output to JSON.
//!
//! Made by `cargo xtask gen-ec2-args` from service-quotas/2019-06-24 of botocore==1.43.127, for aws-sdk-servicequotas 1.121.0.
//!
//! In: JSON by the API's names, values of the SDK. Out: the one from the other. May not: be edited.

use aws_sdk_servicequotas::Client;
use aws_sdk_servicequotas::operation::get_service_quota::{
    GetServiceQuotaInput, GetServiceQuotaOutput, builders::GetServiceQuotaInputBuilder,
};
use aws_sdk_servicequotas::types;
use serde_json::Value;

use crate::ApiError;
use crate::client::failure::failure;
use crate::client::read::{self, Members, Misfit};
use crate::client::write::{self, Object};

/// Makes the call.
pub(in crate::client) async fn call(client: &Client, input: &Value) -> Result<Value, ApiError> {
    let output = read_input(input)?
        .send_with(client)
        .await
        .map_err(failure)?;
    Ok(write_output(&output))
}

fn read_input(value: &Value) -> Result<GetServiceQuotaInputBuilder, Misfit> {
    let mut members = Members::of(value)?;
    let builder = GetServiceQuotaInput::builder()
        .set_context_id(members.get("ContextId", read::text)?)
        .set_quota_code(members.get("QuotaCode", read::text)?)
        .set_service_code(members.get("ServiceCode", read::text)?);
    members.end("GetServiceQuota")?;
    Ok(builder)
}

fn write_output(value: &GetServiceQuotaOutput) -> Value {
    let mut members = Object::new();
    members.put("Quota", value.quota.as_ref(), write_service_quota);
    members.end()
}

pub(super) fn write_error_reason(value: &types::ErrorReason) -> Value {
    let mut members = Object::new();
    members.put("ErrorCode", value.error_code.as_ref(), write::enumeration);
    members.put("ErrorMessage", value.error_message.as_ref(), write::text);
    members.end()
}

pub(super) fn write_metric_info(value: &types::MetricInfo) -> Value {
    let mut members = Object::new();
    members.map(
        "MetricDimensions",
        value.metric_dimensions.as_ref(),
        write::text,
    );
    members.put("MetricName", value.metric_name.as_ref(), write::text);
    members.put(
        "MetricNamespace",
        value.metric_namespace.as_ref(),
        write::text,
    );
    members.put(
        "MetricStatisticRecommendation",
        value.metric_statistic_recommendation.as_ref(),
        write::text,
    );
    members.end()
}

pub(super) fn write_quota_context_info(value: &types::QuotaContextInfo) -> Value {
    let mut members = Object::new();
    members.put(
        "AdjustableAtLevel",
        value.adjustable_at_level.as_ref(),
        write::enumeration,
    );
    members.put("ContextId", value.context_id.as_ref(), write::text);
    members.put(
        "ContextScope",
        value.context_scope.as_ref(),
        write::enumeration,
    );
    members.put(
        "ContextScopeType",
        value.context_scope_type.as_ref(),
        write::text,
    );
    members.end()
}

pub(super) fn write_quota_period(value: &types::QuotaPeriod) -> Value {
    let mut members = Object::new();
    members.put("PeriodUnit", value.period_unit.as_ref(), write::enumeration);
    members.put("PeriodValue", value.period_value.as_ref(), write::whole);
    members.end()
}

pub(super) fn write_service_quota(value: &types::ServiceQuota) -> Value {
    let mut members = Object::new();
    members.put("Adjustable", Some(&value.adjustable), write::flag);
    members.put("Description", value.description.as_ref(), write::text);
    members.put(
        "ErrorReason",
        value.error_reason.as_ref(),
        write_error_reason,
    );
    members.put("GlobalQuota", Some(&value.global_quota), write::flag);
    members.put("Period", value.period.as_ref(), write_quota_period);
    members.put(
        "QuotaAppliedAtLevel",
        value.quota_applied_at_level.as_ref(),
        write::enumeration,
    );
    members.put("QuotaArn", value.quota_arn.as_ref(), write::text);
    members.put("QuotaCode", value.quota_code.as_ref(), write::text);
    members.put(
        "QuotaContext",
        value.quota_context.as_ref(),
        write_quota_context_info,
    );
    members.put("QuotaName", value.quota_name.as_ref(), write::text);
    members.put("ServiceCode", value.service_code.as_ref(), write::text);
    members.put("ServiceName", value.service_name.as_ref(), write::text);
    members.put("Unit", value.unit.as_ref(), write::text);
    members.put(
        "UsageMetric",
        value.usage_metric.as_ref(),
        write_metric_info,
    );
    members.put("Value", value.value.as_ref(), write::number);
    members.end()
}
