// The page at /docs: Swagger UI, dark where the system is. Its document names no server but the page's own.
const dark = matchMedia('(prefers-color-scheme: dark)')
const paint = () => document.documentElement.classList.toggle('dark-mode', dark.matches)
dark.addEventListener('change', paint)
paint()

SwaggerUIBundle({
  dom_id: '#swagger-ui',
  url: new URL(document.querySelector('#swagger-ui').dataset.document, location.href).href,
  presets: [SwaggerUIBundle.presets.apis],
  layout: 'BaseLayout',
  docExpansion: 'list',
  deepLinking: true,
  validatorUrl: null,
})

const root = document.querySelector('#swagger-ui')

/** Attributes that Swagger UI leaves out, by the elements that lack them. */
const MISSING = [
  ['h3.opblock-tag, .models h4, .modal-ux h3', { 'aria-level': '2' }],
  ['.opblock h4, .modal-ux h4', { 'aria-level': '3' }],
  ['.opblock h5', { 'aria-level': '4' }],
  ['.info', { role: 'region', 'aria-label': 'About this API' }],
  ['textarea, .opblock-description-wrapper > input[type="file"]', { 'aria-label': 'Request body' }],
  ['.microlight', { tabindex: '0' }],
  ['.modal-ux', { role: 'dialog', 'aria-modal': 'true', 'aria-label': 'Authorize' }],
  ['.close-modal', { 'aria-label': 'Close' }],
]

/** Attributes that contradict what is seen: a table is no region, and a button is called what it says. */
const WRONG = [
  ['.opblock-summary-control a[href]', 'href'],
  ['table[role="region"]', 'role'],
  ['.auth-btn-wrapper button[aria-label]', 'aria-label'],
]

/** Repairs each new element. A link inside a button goes: the button opens the same, and sets the same address. */
function repair() {
  for (const [selector, attribute] of WRONG) {
    for (const element of root.querySelectorAll(selector)) element.removeAttribute(attribute)
  }
  for (const field of root.querySelectorAll('tr :is(input, select, textarea):not([aria-label])')) {
    const { paramName, propertyName = 'value' } = field.closest('tr').dataset
    field.setAttribute('aria-label', paramName ?? propertyName)
  }
  for (const [selector, attributes] of MISSING) {
    for (const element of root.querySelectorAll(selector)) {
      for (const [name, value] of Object.entries(attributes)) {
        if (!element.hasAttribute(name)) element.setAttribute(name, value)
      }
    }
  }
}
new MutationObserver(repair).observe(root, {
  childList: true,
  subtree: true,
  attributes: true,
  attributeFilter: ['href'],
})
