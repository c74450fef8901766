/** Page that the links of mails and providers lead back to, for sign-ins that begin on our pages. */
export const ARRIVAL_PATH = '/ui/arrive'

/** Account of the signed-in user, with its parts below. */
export const ACCOUNT_PATH = '/ui/account'

/** Page that adds second factors. */
export const FACTORS_PATH = `${ACCOUNT_PATH}/factors`

/** Page on which a user answers the request of an application. */
export const CONSENT_PATH = '/ui/consent'

/** Page on which a user enters the code of a device (RFC 8628). */
export const DEVICE_PATH = '/ui/device'

/** Page that ends the session of a browser at the request of an application. */
export const LOGOUT_PATH = '/ui/logout'

/** Page between the link of a mail and its effect, for links that lead back to our pages. */
export const CONFIRM_PATH = '/ui/confirm'

/** Whether a sign-in that leads to this page gives no application a session of the user. */
export const isForPagesAlone = (path: string): boolean =>
  [ACCOUNT_PATH, CONSENT_PATH, DEVICE_PATH].some((page) => path.startsWith(page))
