"""Errors of who may do what: authorization, authentication, delegation tokens."""

from headwater.base.errors import ErrorCode, KafkaError


class AuthorizationError(KafkaError):
    """The client is known, but may not do what it asked for."""


class TopicAuthorizationFailedError(AuthorizationError):
    code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    advice = "This client's principal needs an ACL on the topic."


class GroupAuthorizationFailedError(AuthorizationError):
    code = ErrorCode.GROUP_AUTHORIZATION_FAILED
    advice = "This client's principal needs an ACL on the group."


class ClusterAuthorizationFailedError(AuthorizationError):
    code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    advice = "This client's principal needs an ACL on the cluster."


class TransactionalIdAuthorizationFailedError(AuthorizationError):
    code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    advice = "This client's principal needs an ACL on the transactional id."


class DelegationTokenAuthorizationFailedError(AuthorizationError):
    code = ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED


class UnsupportedSaslMechanismError(KafkaError):
    code = ErrorCode.UNSUPPORTED_SASL_MECHANISM


class IllegalSaslStateError(KafkaError):
    code = ErrorCode.ILLEGAL_SASL_STATE


class SaslAuthenticationFailedError(KafkaError):
    code = ErrorCode.SASL_AUTHENTICATION_FAILED


class SecurityDisabledError(KafkaError):
    code = ErrorCode.SECURITY_DISABLED


class DelegationTokenAuthDisabledError(KafkaError):
    code = ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED


class DelegationTokenNotFoundError(KafkaError):
    code = ErrorCode.DELEGATION_TOKEN_NOT_FOUND


class DelegationTokenOwnerMismatchError(KafkaError):
    code = ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH


class DelegationTokenRequestNotAllowedError(KafkaError):
    code = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED


class DelegationTokenExpiredError(KafkaError):
    code = ErrorCode.DELEGATION_TOKEN_EXPIRED


class InvalidPrincipalTypeError(KafkaError):
    code = ErrorCode.INVALID_PRINCIPAL_TYPE


class UnacceptableCredentialError(KafkaError):
    code = ErrorCode.UNACCEPTABLE_CREDENTIAL


class PrincipalDeserializationFailureError(KafkaError):
    code = ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE
