import { boolean, duration, integer, type Values, type Variables } from '@services/common/config/variables'
import { MAX_METADATA_BYTES } from '../core/users/metadata.ts'
import { canReachPhones, type PhoneReach } from './sms-gateways.ts'

export const signupVariables = {
  DISABLE_SIGNUP: boolean('Only invited users can join.', { default: 'false' }),
  SIGNUP_DATA_MAX_BYTES: integer(
    'Largest `data` of a sign-up or a sign-in request, which anyone can send for any address, in bytes of JSON.',
    { default: '4096', min: 2, max: MAX_METADATA_BYTES },
  ),
  EXTERNAL_EMAIL_ENABLED: boolean('E-mail sign-up and sign-in.', { default: 'true' }),
  EXTERNAL_EMAIL_MAGIC_LINK_ENABLED: boolean('Sign-in by a mailed link or code.', { default: 'true' }),
  EXTERNAL_FLOW_STATE_EXPIRY_DURATION: duration(
    'Validity of PKCE codes, from the click or the sign-in, and of attempts to sign in at a provider, at least 5 minutes.',
    { default: '300', positive: true },
  ),
  EXTERNAL_PHONE_ENABLED: boolean(
    'Phone sign-up and sign-in, where an SMS gateway or the send-sms hook is configured.',
    {
      default: 'true',
    },
  ),
  EXTERNAL_ANONYMOUS_USERS_ENABLED: boolean('Anonymous sign-in.', { default: 'false' }),
  ANONYMOUS_USERS_MAX_IDLE: duration(
    'Time after the last sign-in, refresh or change until an anonymous user is deleted, such as `720h`; 0: never.',
    { default: '0', max: '87600h' },
  ),
  SELF_DELETION_ENABLED: boolean(
    'Users may delete their account (`DELETE /user`, and the account page). An application with data of its own about users first needs the event `user.deleted`.',
    { default: 'false' },
  ),
} satisfies Variables

export const signupSettings = (values: Values<typeof signupVariables> & PhoneReach) => ({
  disabled: values.DISABLE_SIGNUP,
  dataMaxBytes: values.SIGNUP_DATA_MAX_BYTES,
  email: values.EXTERNAL_EMAIL_ENABLED,
  magicLinks: values.EXTERNAL_EMAIL_MAGIC_LINK_ENABLED,
  pkceCodeLifetimeSeconds: values.EXTERNAL_FLOW_STATE_EXPIRY_DURATION,
  // Without a gateway no code could be delivered.
  phone: values.EXTERNAL_PHONE_ENABLED && canReachPhones(values),
  anonymous: values.EXTERNAL_ANONYMOUS_USERS_ENABLED,
  anonymousMaxIdleSeconds: values.ANONYMOUS_USERS_MAX_IDLE,
  selfDeletion: values.SELF_DELETION_ENABLED,
})
