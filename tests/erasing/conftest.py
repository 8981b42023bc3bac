from tests.shop_floor import buyer, new_buyer, pretend_shop, shop_process, shop_row

__all__ = ["buyer", "new_buyer", "pretend_shop", "shop_process", "shop_row"]
